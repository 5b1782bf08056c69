package eflib

import "strings"

// Model is what a PCI device id says about a card. Facts that are not known are empty or 0.
type Model struct {
	Name, Product, Family string
	// MemoryMiB is the least a card of this model offers to its users.
	MemoryMiB int64
}

// models is the table of PCI device ids. The S60 has 42,976 MiB with ECC on and 49,120 MiB with ECC
// off: the smaller figure stands here. For other models of nominally 48 GB the usable part is not
// known, so there is none.
var models = map[uint16]Model{
	0x0001: {Name: "T10", Family: "LEO", MemoryMiB: 16384},
	0x0002: {Name: "T11"},
	0x0003: {Name: "T10", Family: "LEO", MemoryMiB: 16384}, // with QSFP-DD
	0x0021: {Name: "T20", MemoryMiB: 32768},
	0x0022: {Name: "T20", MemoryMiB: 65536},
	0x0023: {Name: "T21", MemoryMiB: 32768},
	0x0024: {Name: "T21", MemoryMiB: 65536},
	0x8001: {Name: "I20"},
	0x8011: {Name: "I10"},
	0x8012: {Name: "I10L"},
	0x8031: {Name: "S6"},
	0x8032: {Name: "S6"},
	0xc031: {Name: "S30"},
	0xc032: {Name: "S90"},
	0xc033: {Name: "S60G"},
	0xc035: {Name: "S60", Product: "scorpio", Family: "SCORPIO", MemoryMiB: 42976},
	0xc041: {Name: "L300", MemoryMiB: 147456},
	0xc042: {Name: "L600"},
}

// ModelOf returns the model with a PCI device id, and false when the table does not have it.
func ModelOf(deviceID uint16) (Model, bool) {
	m, known := models[deviceID]
	return m, known
}

// ModelName returns the model in the name a card has for itself: "S60" of "Enflame S60".
func ModelName(name string) string {
	return strings.TrimSpace(strings.TrimPrefix(name, "Enflame"))
}
