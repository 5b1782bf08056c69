// Package sim makes up machines with GCU cards, for tests and for clusters without hardware.
//
// # Promise
//
// A preset is the same on every run. Machine.ForNode gives it the uuids and serial numbers of one node:
// the same name gives the same ones, two names give different ones. A Machine is an eflib.Inventory
// that can have faults, and WriteSysfs writes the files that package sysfs reads, so that what runs on
// a host can run on a made-up one.
//
// # Assumptions
//
// Models, memory and PCI ids are those of real cards; what is not known of a model is empty here too.
// Bus numbers, device numbers and, where no real machine is named, the machine are invented. The wiring
// of s60x8 is that of the vendor's example.
//
// # Refusals
//
// A Machine is a value for one goroutine; copy it with Clone or guard it. WriteSysfs does not touch a
// folder sys that it did not make, so that pointing it at a real root changes nothing.
package sim
