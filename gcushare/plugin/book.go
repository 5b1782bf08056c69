package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// book is the node's book in memory and on disk. In a rolling update two agents serve for a while, the
// old one and the new one, and kubelet may ask either. So the file is what counts: each change is made
// under a lock on a file beside it, upon what the file says then.
type book struct {
	path string

	// mu guards the fields below and the file; it is held while the file is written, so that the file never
	// goes back.
	mu    sync.Mutex
	state contract.Book
	seen  os.FileInfo // the version of the file that state was read from or written to; nil for none
}

// openBook reads the book. One that cannot be read is renamed and told in aside; the book is empty then.
func openBook(path string, now time.Time) (b *book, aside error, err error) {
	b = &book{path: path}
	unlock, err := b.lock()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	err = b.refresh()
	var unread *unreadError
	switch {
	case err == nil:
		return b, nil, nil
	case !errors.As(err, &unread):
		return nil, nil, fmt.Errorf("read book: %w", err)
	}
	kept := fmt.Sprintf("%s.unread-%s", path, now.UTC().Format("20060102T150405.000"))
	if renameErr := os.Rename(path, kept); renameErr != nil {
		return nil, nil, fmt.Errorf("set aside a book that cannot be read (%w): %w", err, renameErr)
	}
	return b, fmt.Errorf("book set aside as %s: %w", kept, err), nil
}

// unreadError is a book that is there and says nothing that can be used.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// lock keeps other agents of the node from changing the book. The kernel drops the lock of an agent that
// dies; it is held for one write at a time.
func (b *book) lock() (unlock func(), err error) {
	f, err := os.OpenFile(b.path+".lock", os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the book: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the book: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// refresh takes in the file if it is another than the one last seen.
func (b *book) refresh() error {
	f, err := os.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		b.state, b.seen = contract.Book{}, nil
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if b.seen != nil && os.SameFile(stat, b.seen) && stat.Size() == b.seen.Size() && stat.ModTime().Equal(b.seen.ModTime()) {
		return nil
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	state, err := contract.DecodeBook(text)
	if err != nil {
		return &unreadError{err}
	}
	b.state, b.seen = *state, stat
	return nil
}

// update changes the book by a function that gets a copy to change. Neither memory nor file change when it
// fails. A change of nothing writes nothing.
func (b *book) update(change func(*contract.Book) (changed bool, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := b.refresh(); err != nil {
		return fmt.Errorf("read book: %w", err)
	}
	next := b.state
	next.Pods, next.Tickets = slices.Clone(next.Pods), slices.Clone(next.Tickets)
	changed, err := change(&next)
	if err != nil || !changed {
		return err
	}
	text, err := contract.EncodeBook(next)
	if err != nil {
		return err
	}
	if err := WriteFile(b.path, text, 0o600); err != nil {
		return err
	}
	b.state = next
	if b.seen, err = os.Stat(b.path); err != nil {
		b.seen = nil // it is read again before the next change
	}
	return nil
}

// read returns the book as it stands; it must not be changed. While the file cannot be read, that is what
// it said last.
func (b *book) read() contract.Book {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.refresh()
	return b.state
}

func ticketAt(b *contract.Book, name string) int {
	return slices.IndexFunc(b.Tickets, func(t contract.BookTicket) bool { return t.Name == name })
}

func podAt(b *contract.Book, uid types.UID) int {
	return slices.IndexFunc(b.Pods, func(p contract.BookPod) bool { return p.UID == string(uid) })
}

// roomError says that the pods of the book leave no room on a card.
type roomError struct {
	minor  int
	whole  bool
	needs  int64
	free   int64
	others []contract.BookPod // who hold the card
}

func (e *roomError) Error() string {
	var names []string
	for _, p := range e.others {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	by := strings.Join(names, ", ")
	if e.whole {
		return fmt.Sprintf("card %d is wanted whole or held whole, and held by %s", e.minor, by)
	}
	return fmt.Sprintf("card %d has %d MiB free, the record gives %d; held by %s", e.minor, e.free, e.needs, by)
}

// charge books what a pod holds, in place of what it held before, if the other pods of the book leave
// room for it.
func charge(b *contract.Book, pod contract.BookPod, cards map[int]int64) (changed bool, err error) {
	for _, c := range pod.Charges {
		var used int64
		var others []contract.BookPod
		whole := c.Whole
		for _, other := range b.Pods {
			if other.UID == pod.UID {
				continue
			}
			for _, o := range other.Charges {
				if o.Minor == c.Minor {
					used = share.Add(used, o.MemoryMiB)
					whole = whole || o.Whole
					others = append(others, other)
				}
			}
		}
		if len(others) == 0 && c.MemoryMiB <= cards[c.Minor] {
			continue
		}
		if free := share.Sub(cards[c.Minor], used); whole || c.MemoryMiB > free {
			return false, &roomError{minor: c.Minor, whole: whole, needs: c.MemoryMiB, free: free, others: others}
		}
	}
	at := podAt(b, types.UID(pod.UID))
	if at < 0 {
		b.Pods = append(b.Pods, pod)
		return true, nil
	}
	if slices.Equal(b.Pods[at].Charges, pod.Charges) {
		return false, nil
	}
	b.Pods[at] = pod
	return true, nil
}

// drop removes pods with their tickets, and returns the names of the tickets.
func drop(b *contract.Book, gone map[string]bool) []string {
	var names []string
	b.Tickets = slices.DeleteFunc(b.Tickets, func(t contract.BookTicket) bool {
		if t.PodUID == "" || !gone[t.PodUID] {
			return false
		}
		names = append(names, t.Name)
		return true
	})
	b.Pods = slices.DeleteFunc(b.Pods, func(p contract.BookPod) bool { return gone[p.UID] })
	return names
}
