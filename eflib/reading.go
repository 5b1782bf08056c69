package eflib

import (
	"fmt"
	"reflect"
)

// Reading is one value that a card may or may not tell. It holds either a value that is plausible or
// the reason why there is none; the zero Reading was not read.
type Reading[T any] struct {
	value T
	err   error
	known bool
}

// Known returns the reading of a value.
func Known[T any](value T) Reading[T] { return Reading[T]{value: value, known: true} }

// Unknown returns the reading of a value that could not be had.
func Unknown[T any](err error) Reading[T] {
	if err == nil {
		err = ErrNotRead
	}
	return Reading[T]{err: err}
}

// Get returns the value, or why there is none.
func (r Reading[T]) Get() (T, error) { return r.value, r.Err() }

// Value returns the value and whether there is one.
func (r Reading[T]) Value() (T, bool) { return r.value, r.known }

// Err returns why there is no value, and nil when there is one.
func (r Reading[T]) Err() error {
	if !r.known && r.err == nil {
		return ErrNotRead
	}
	return r.err
}

// Equal says whether both have the same value, or both have none for the same reason. It is found by
// packages that compare values in tests.
func (r Reading[T]) Equal(o Reading[T]) bool {
	if r.known != o.known {
		return false
	}
	return r.known && reflect.DeepEqual(r.value, o.value) || !r.known && r.Err().Error() == o.Err().Error()
}

// String returns the value or the reason.
func (r Reading[T]) String() string {
	if r.known {
		return fmt.Sprint(r.value)
	}
	return r.Err().Error()
}

// of returns a reading of value, or of err when that is set.
func of[T any](value T, err error) Reading[T] {
	if err != nil {
		return Unknown[T](err)
	}
	return Known(value)
}
