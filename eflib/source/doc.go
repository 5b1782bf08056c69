// Package source opens the cards of a host, real or made up, by options that every program has.
//
// # Promise
//
// A Source lists the cards (eflib.Inventory), reads them (eflib.Telemetry) and tells of changes
// (eflib.Watcher). On a real host it joins two views by PCI address: sysfs says which cards there are,
// which minor and device node each has and how they are wired; libefml or efsmi says who each card is,
// how much memory it has and whether it is well. With sysfs alone the health of every card is unknown.
//
// # Assumptions
//
// What a card said of itself holds for as long as it stays where it is: while it does not answer, it
// keeps the uuid, serial number and memory it had, and only its health becomes unknown. A card that
// never answered has no uuid at all rather than one that changes later, so NodeDevices leaves it out.
//
// # Restart
//
// Open chooses the back end once. A library that is installed later is found by the next Open. The
// driver may come, go and be replaced at any time.
//
// # Refusals
//
// Options that contradict each other, a library or tool that was asked for and is not there, and an
// unknown machine are errors of Open. No cards and no driver are not: they are told by Devices.
package source
