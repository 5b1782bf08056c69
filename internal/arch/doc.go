// Package arch holds the rules about who may import whom, as docs/architecture.md states them, and a
// test that applies them to every package of the module.
//
// # Promise
//
// Check finds each broken rule and names the package, what it imports and the rule. A package that the
// map of rooms does not know is a finding too, so that a new room is given its place on purpose.
//
// # What counts
//
// Rules about rooms look at direct imports, those of test files included: a test of a lower room that
// needs a higher one belongs into test/. Rules about heavy libraries look at everything a package links
// in, and leave test files out. Rules about os/exec look at direct imports outside of test files, since
// some libraries can start processes without our asking for it.
package arch
