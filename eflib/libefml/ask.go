package libefml

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/internal/lane"
)

// buffer is what a function of the library writes to. A newer library may write more than the struct
// we know; the slack keeps that from overwriting the heap.
type buffer[T any] struct {
	value T
	slack [1024]byte
}

// ask calls a function that fills in one value: args, and a pointer to it.
func ask[T any](ctx context.Context, l *Library, in *lane.Lane, function string, args ...uint32) (T, error) {
	b := new(buffer[T])
	err := l.invoke(ctx, in, function, func(symbol uintptr) uintptr {
		defer runtime.KeepAlive(b)
		words := make([]uintptr, 0, len(args)+1)
		for _, a := range args {
			words = append(words, uintptr(a))
		}
		code, _, _ := purego.SyscallN(symbol, append(words, uintptr(unsafe.Pointer(b)))...)
		return code
	})
	if err != nil { // the call may still write to b
		var none T
		return none, err
	}
	return b.value, nil
}

// card asks about the card with an index.
func card[T any](ctx context.Context, l *Library, index uint32, function string, more ...uint32) (T, error) {
	if index >= maxCards {
		var none T
		return none, fmt.Errorf("%s: card %d: %w", function, index, eflib.ErrDeviceLost)
	}
	return ask[T](ctx, l, l.cards[index], function, append([]uint32{index}, more...)...)
}

// cardText asks for a text about a card.
func cardText(ctx context.Context, l *Library, index uint32, function string) (string, error) {
	raw, err := card[text](ctx, l, index, function)
	return clean(raw[:]), err
}

// cardID asks for a name of a card that is told from all others by it.
func cardID(ctx context.Context, l *Library, index uint32, function string) (string, error) {
	raw, err := card[text](ctx, l, index, function)
	if err != nil {
		return "", err
	}
	return cleanID(raw[:])
}

// cardBool asks a yes-or-no question about a card.
func cardBool(ctx context.Context, l *Library, index uint32, function string) (bool, error) {
	raw, err := card[uint8](ctx, l, index, function)
	if err != nil {
		return false, err
	}
	return truth(raw)
}

// truth reads a boolean. What is neither 0 nor 1 was not written by a program that means one.
func truth(raw ...uint8) (first bool, err error) {
	for _, b := range raw {
		if b > 1 {
			return false, fmt.Errorf("%w: boolean %d", eflib.ErrImplausible, b)
		}
	}
	return raw[0] == 1, nil
}

// count asks for a number of things of which a card has at most limit.
func count(ctx context.Context, l *Library, index uint32, function string, limit uint32) (int, error) {
	n, err := card[uint32](ctx, l, index, function)
	if err == nil && n > limit {
		err = fmt.Errorf("%s: %w: %d", function, eflib.ErrImplausible, n)
	}
	if err != nil {
		return 0, err
	}
	return int(n), nil
}

// processes asks which processes hold memory of a card.
func processes(ctx context.Context, l *Library, index uint32) ([]process, error) {
	const function = "EfmlGetProcessInfo"
	type answer struct {
		count uint32
		list  [maxProcesses]process
	}
	b := new(buffer[answer])
	b.value.count = maxProcesses
	err := l.invoke(ctx, l.cards[index], function, func(symbol uintptr) uintptr {
		defer runtime.KeepAlive(b)
		code, _, _ := purego.SyscallN(symbol, uintptr(index),
			uintptr(unsafe.Pointer(&b.value.count)), uintptr(unsafe.Pointer(&b.value.list)))
		return code
	})
	if err != nil {
		return nil, err
	}
	if b.value.count > maxProcesses {
		return nil, fmt.Errorf("%s: %w: %d processes", function, eflib.ErrImplausible, b.value.count)
	}
	return b.value.list[:b.value.count], nil
}

// errorRecords asks for the driver's error log of a card.
func errorRecords(ctx context.Context, l *Library, index uint32) ([]errorRecord, error) {
	type answer struct {
		list  [maxRecords]errorRecord
		total uint32
	}
	b := new(buffer[answer])
	err := l.invoke(ctx, l.cards[index], "EfmlGetErrorRecords", func(symbol uintptr) uintptr {
		defer runtime.KeepAlive(b)
		code, _, _ := purego.SyscallN(symbol, uintptr(index), maxRecords,
			uintptr(unsafe.Pointer(&b.value.list)), uintptr(unsafe.Pointer(&b.value.total)))
		return code
	})
	if err != nil {
		return nil, err
	}
	return b.value.list[:min(b.value.total, maxRecords)], nil
}
