// Package engine says how container engines are told of enflame-container-runtime. Its sub-packages know one
// engine each; they read files and return what is to be changed, and only Change.Apply writes.
//
// # Promise
//
// Configuring twice is configuring once. What is not about the runtime stays byte for byte, comments and
// order included, and undoing gives the text back that was there before, also when the rest was edited in
// between. No change means that the engine need not be restarted; nothing here restarts one.
//
// # Refusals
//
// A file that cannot be read, or whose text cannot be edited so that it means what it should, is left as it
// is, and so is a runtime called enflame that somebody else has configured.
package engine
