// Package cdi keeps the static CDI spec of a host's cards, /etc/cdi/enflame.com-gcu.yaml.
//
// # Promise
//
// Each card is a device by its minor, a device by its uuid, and part of the device "all". A device brings the
// card's node; every device also brings the control node and the vendor's tools and libraries. A reader of
// the file sees the old or the new spec, never a part, also after a power loss. A spec that is right already
// is not written again.
//
// The spec sets no variable: engines let the variables of one device replace those of another, so a
// container with two cards would be told of one.
//
// # Restart
//
// The file is derived from the host and kept nowhere else; Refresh after a reboot makes it right.
// Writers take turns by a lock on the folder, and the next one removes what a killed one has left.
//
// # Refusals
//
// Where the driver is not loaded or no card answers, a file that is there stays: it is more likely that
// the cards come back than that they are gone. The file of a host whose last card was taken out is removed
// only on request. There is no spec without devices, since CDI knows none.
package cdi
