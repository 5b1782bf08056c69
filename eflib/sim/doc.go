// Package sim makes up machines with GCU cards, for tests and for clusters without hardware.
//
// # Promise
//
// A preset is the same on every run. Machine.ForNode gives it the uuids and serial numbers of one node:
// the same name gives the same ones, two names give different ones. A Machine is an eflib.Inventory
// that can have faults, and WriteSysfs writes the files that package sysfs reads, so that what runs on
// a host can run on a made-up one.
//
// A Live machine changes while it runs: its control file lists the faults it has now, one a line (see
// ParseFaults). The file is read again by each call, so a line that goes away is a fault that is
// healed. The same file serves every program that simulates the same machine.
//
// # Assumptions
//
// Models, memory and PCI ids are those of real cards; what is not known of a model is empty here too.
// Bus numbers, device numbers, the figures of a Sample and, where no real machine is named, the machine are invented. The wiring
// of s60x8 is that of the vendor's example.
//
// # Refusals
//
// A Machine is a value for one goroutine; copy it with Clone or guard it. A Live may be shared. A line
// of a control file that cannot be understood is an error of every call; the other lines hold. WriteSysfs does not touch a
// folder sys that it did not make, so that pointing it at a real root changes nothing.
package sim
