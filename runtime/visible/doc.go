// Package visible reads the value of ENFLAME_VISIBLE_DEVICES.
//
// # Promise
//
// A value means what its grammar says, and nothing else is ever read into it:
//
//	value = "" | "void"            leave the container alone
//	      | "none"                 the user libraries, no card
//	      | "all"                  every card
//	      | card { "," card }      these cards
//	card  = [ "GCU-" ] minor       a decimal number without leading zeros
//
// Naming a card twice is naming it once.
//
// # Refusals
//
// Everything else is an error that quotes the value: other spellings ("ALL"), blanks ("0, 1"), signs,
// words among cards ("0,none") and numbers no host can have. There is no default branch that gives cards.
package visible
