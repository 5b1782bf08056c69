// Package eflib is a library about the Enflame GCU cards of a host: what cards there are (Device,
// Inventory), what they tell at run time (Sample, Telemetry), what changes (State, Watcher), how they
// are called by model (ModelOf), and how they are announced to a cluster (NodeDevices).
//
// Programs open a host with package source. The back ends below it can be used by themselves: sysfs
// reads the kernel's files, libefml asks the vendor's library, efsmi reads the vendor's tool, and sim
// makes machines up. Package eflibtest has the suite that all of them pass.
//
// # Promise
//
// An Inventory returns the cards it could read, sorted by minor, even when others could not be read.
// What was wrong comes beside them, as one error that joins a *DeviceError per odd entry; it never
// hides a good card. A caller that can live with part of the cards uses the devices and reports the
// error. Only an error without devices means that nothing is known.
//
// A Reading holds a value that can be true, or the reason why there is none, never a number that stands
// for none. Reasons are found with errors.Is (ErrNotSupported, ErrDriverNotLoaded, ErrDeviceLost,
// ErrTimeout, ErrImplausible) and say the card and the reading with errors.As (*DeviceError). Every
// question ends by the deadline of its context, and one stuck card costs the others nothing.
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
