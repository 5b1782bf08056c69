package explain

import "slices"

// nearest returns the word of a list that a misspelled one most likely meant, empty if none is near.
func nearest(word string, list []string) string {
	best, least := "", len(word)/3+1
	for _, w := range slices.Sorted(slices.Values(list)) {
		if d := edits(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// edits is the number of characters to insert, drop, replace or swap with their neighbour to make b of a.
func edits(a, b string) int {
	two, one := []int(nil), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
