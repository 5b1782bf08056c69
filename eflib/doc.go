// Package eflib is a library about the Enflame GCU cards of a host: what cards there are (Device,
// Inventory), how they are called by model (ModelOf), and how they are announced to a cluster
// (NodeDevices). Back ends live in packages below: sysfs reads a host, sim makes machines up.
//
// # Promise
//
// An Inventory returns the cards it could read, sorted by minor, even when others could not be read.
// What was wrong comes beside them, as one error that joins a *DeviceError per odd entry; it never
// hides a good card. A caller that can live with part of the cards uses the devices and reports the
// error. Only an error without devices means that nothing is known.
//
// # Assumptions
//
//   - A fact that is not known is left empty, 0 or -1 and never guessed: a product name nobody has
//     published, the memory of a model we have no figure for, a NUMA node the kernel does not tell.
//   - The memory of a model is the least that a card of this model offers (S60: with ECC on), so that
//     a promise made from it can be kept.
//   - Health starts as unknown, which is not healthy. A back end that cannot tell leaves it so.
//
// # Restart
//
// Nothing is kept between calls: each Devices call reads anew, and a card that was odd the last time is
// back as soon as it reads well.
//
// # Refusals
//
// Two entries that claim one minor are both left out, since either could be the wrong one. A card
// without memory or uuid is a Device, but NodeDevices leaves it out: the announcement has no way to say
// "unknown", and a card of unknown size cannot be shared.
package eflib
