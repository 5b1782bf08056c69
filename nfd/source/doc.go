// Package source reads what feature discovery has to know of a host (labels.Facts), from the first of several
// places that can be opened.
//
// # Promise
//
// Read tells which cards there are, what each is, and what could not be asked this time. It returns an error
// only where nothing at all is known, and then nothing may be concluded from it: a driver that is not loaded
// or does not answer is such an error, a host that has no card is not.
//
// That a host has no card is said where the driver is loaded and has none, or where no function of the vendor
// is on the PCI bus. Without a driver the bus is all there is to look at.
//
// Watch yields when the cards have changed, so that the caller looks at once.
//
// # Where it is read
//
// In the order of Options.Order; sysfs is part of each of them, since it says which cards there are.
//
//   - libefml asks the vendor's library
//   - efsmi reads what "efsmi -q" prints
//   - efsmi-json reads what "efsmi -q --json-format" prints, taking its keys for those of "efsmi -q". No
//     output of a real release was seen, so it is in no default order: unproven
//   - sysfs reads the kernel's files alone; memory is that of the model
//   - sim makes a machine up
//
// # Restart
//
// Open chooses once. A library that is installed later is found by the next Open.
//
// # Refusals
//
// An order without any place that can be opened, an unknown place, and options of another place are errors
// of Open, which name what is allowed.
package source
