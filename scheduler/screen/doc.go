// Package screen lays out text for a terminal of 80 columns: paragraphs, tables, colours, and the same
// as a picture for the documentation.
//
// Widths are terminal columns, so that East Asian names do not break a table. No control character of
// an object reaches the terminal: whatever comes from the API passes Clean.
package screen
