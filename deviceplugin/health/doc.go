// Package health holds what the node agent knows of its cards' health.
//
// # Promise
//
// A Tracker is told what was seen (Update) and says how things stand (Report). Health is a level: a fault
// that is told twice is one fault, and what the last look saw is what holds, whatever came before it. The
// exceptions are deliberate and end by themselves: a card that was at fault stays on probation, and what
// can only be seen as a step (a counter that rose, a new error record) stands for one Thresholds.Probation.
// Changes are told once each, by the Update that made them.
//
// # What follows from what
//
//	seen                                                     Faulty   for new holders
//	off the bus, exchanged, or no driver bound to it         yes      no
//	RMA flag; the driver calls the card unhealthy            yes      no
//	double-bit ECC counter rose, or is not 0 and the driver  yes      no
//	calls the card unhealthy
//	temperature from HotCelsius on, until below CoolCelsius  yes      no
//	no answer in Thresholds.HangLooks looks in a row         yes      no
//	no answer, fewer looks                                   no       no
//	the driver is not loaded                                 no       no, not even with checks off
//	health cannot be asked, cannot be read                   no       no; with checks off: yes
//	was Faulty, no finding is left, probation                no       no
//	old double-bit errors of a card that says it is well;    no       yes, with a warning
//	new error records; PCIe link narrower than it can be
//
// IDs that are held on a card become unhealthy only when it is Faulty, since a container that holds an
// unhealthy ID is not admitted again after a restart of kubelet. A driver that is not loaded is no fault
// of a card: it takes all cards along, and whoever loads it again ends it, without probation.
//
// What a look does not tell stays as it was: silence neither accuses nor acquits. A card that is missing
// from a list that says of itself to be incomplete is unreadable, not gone.
//
// # Probation
//
// A card whose findings are all gone waits Thresholds.Probation before it gets new holders. A card that
// fails again on probation, or within 64 such times after it, waits twice as long, up to 16 times as long.
//
// # Library or card
//
// One card that does not answer is that card's. When several are asked and none answers, it is the
// library's or the machine's: a finding of the host, and no card comes nearer to a proven hang.
//
// # Assumptions
//
// A card is its uuid. One that does not tell a uuid is the card last seen at its minor and PCI address.
// Another uuid at a known minor is another card, with a clean history; the one before is gone. What the
// numbers in error records mean is not published, so they accuse nobody by themselves.
//
// # Restart
//
// History is what has to outlive the agent: findings with their times, probations, flaps, the counter of
// double-bit errors and the error records already seen. A Tracker made from it shortens no probation and
// raises no old error again. Cards it knows are reported as not Present until the first Update, which
// should come with samples: health that the list does not tell would be unknown for a moment otherwise.
//
// # Refusals
//
// New refuses contradicting thresholds. DecodeHistory refuses what is damaged or newer; the caller
// reports that and starts with none.
//
// A Tracker does no I/O, has no goroutines and reads no clock. It is not for use by several goroutines at
// once; Reports and Changes are, as long as nobody writes to them.
package health
