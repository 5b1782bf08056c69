// Package command is the command line of gcu-feature-discovery: flags, the way to the API server, events,
// signals, its small HTTP server.
package command
