// Package sysfs lists the cards of a host by reading /sys. It needs the kernel driver and no library.
//
// # What it reads
//
//	sys/module/enflame/version               the driver is loaded, and its version
//	sys/class/dmi/id/product_name            the machine
//	sys/bus/pci/devices/<address>            a link; its target gives the bridges
//	  vendor, device, class, numa_node
//	  {current,max}_link_{speed,width}      the PCIe link, for Sample
//	  enflame/gcuN/dev                       minor N, device node major:minor; older drivers: zixiao/
//
// # Promise
//
// Every function of the vendor that the driver has taken is a Device, unless something essential of it
// cannot be read: its link, ids, minor or device node numbers. Such an entry gives a *DeviceError and
// the others are returned. An unreadable NUMA node is unknown and no error. An unknown device id or a
// model whose memory is not known gives the Device as far as it is known, and a *DeviceError.
//
// # What sysfs cannot tell
//
//   - The uuid. It is "GCU-PCI-" and the PCI address, for example "GCU-PCI-0000:11:00.0": stable on
//     its host as long as the card stays in its slot, equal on hosts of one build, and the same after
//     a card was swapped. A back end that asks the card has better ones.
//   - Health and the serial number: health is unknown.
//   - Memory: it is that of the model, at its least.
//
// # Refusals
//
// Without the driver Devices returns eflib.ErrDriverNotLoaded and no devices; without a PCI bus
// eflib.ErrNotSupported. Functions of the vendor that are not accelerators (class 12) are passed over.
// An entry of another vendor that has the driver's folder is reported and not used.
package sysfs
