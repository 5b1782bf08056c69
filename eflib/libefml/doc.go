// Package libefml reads the cards through the vendor's management library, opened at run time and
// without cgo. It knows the index-based functions, Efml*, only.
//
// # Promise
//
//   - Every call has a deadline: that of its context, or CallTimeout if that comes first. A call that
//     does not return in time is left in its goroutine, and its card answers eflib.ErrTimeout at once
//     until the call is back. There is one such goroutine a card at most, one for the host and one for
//     events. A card that hangs holds up no other card.
//   - A function that the library lacks makes its own reading eflib.ErrNotSupported, no more.
//   - Return codes are *CodeError, and errors.Is finds the errors of package eflib in them.
//   - Texts end after 128 bytes, whatever the library wrote, and hold only what can be printed. A uuid
//     or serial number that would have to be changed for that is refused.
//   - A driver that is reloaded is noticed by the next call, which starts the library again.
//
// # Assumptions
//
// The structs are those of layout.go; the buffers have room behind them for a library that writes more.
// A card is found by its PCI address, anew each time, since nothing promises that an index stays with
// its card. Devices gives the index as minor, which is right where the library counts like the driver;
// package source takes minors from sysfs instead. Virtual devices are taken to be numbered from 0.
//
// # Restart
//
// Open does not need the driver. A library is never unloaded, as a call may hang inside of it.
//
// # Refusals
//
// A library without EfmlInit, EfmlShutdown, EfmlGetDevCount and EfmlGetDevInfo is not opened. While a
// call hangs EfmlShutdown is not called, neither by Close nor before a new start.
//
// A program that links this package needs the host's dynamic linker, glibc's, even with CGO_ENABLED=0.
package libefml
