// Package ctk is the command line of enflame-ctk, the administrator's tool for GCU cards in containers.
//
// # Promise
//
// Standard output has the answer, standard error what went wrong or is worth a look. The exit code is 0
// when all is as it should be, and 1 otherwise; check and doctor exit with 1 when they have found
// something. Nothing is changed by list, check, doctor and --dry-run.
package ctk
