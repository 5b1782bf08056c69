package share

import "math"

// Add returns a+b for non-negative operands, at most the largest int64.
func Add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Mul returns a*b for non-negative operands, at most the largest int64.
func Mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Sub returns a-b, at least 0.
func Sub(a, b int64) int64 {
	if b >= a {
		return 0
	}
	return a - b
}
