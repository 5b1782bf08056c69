// Package command is the command line of the exporter: flags by their older names, what runs in the background, and
// its pages.
package command
