package labels

// Facts are what was read of a node.
type Facts struct {
	// Cards are the cards that told something, in any order.
	Cards []Card
	// Silent is how many more cards are there and told nothing.
	Silent int
	// Driver is the version of the loaded driver, Machine the name of the machine in its firmware.
	Driver, Machine Text
}

// Text is a fact of the host. An empty value that is not Unread is one that nobody can tell.
type Text struct {
	Value string
	// Unread says that it could not be asked this time.
	Unread bool
}

// Card is what was read of one card.
type Card struct {
	// Model, Product and Family are empty where not known.
	Model, Product, Family string
	// MemoryMiB is 0 where not known.
	MemoryMiB int64
	// Unread says that the card itself did not answer this time: what is empty may come yet, and the memory
	// may be that of the model rather than of the card.
	Unread bool
	// Virtual are the parts of a card that is divided into vGCUs.
	Virtual []Virtual
	// VirtualUnread says that its parts could not be asked this time.
	VirtualUnread bool
}

// Virtual is one vGCU. MemoryMiB is 0 where not known.
type Virtual struct {
	MemoryMiB int64
	// Unread says that its memory could not be asked this time.
	Unread bool
}

// Count is how many cards the node has.
func (f Facts) Count() int { return len(f.Cards) + f.Silent }

// verdict is what the cards together say about one fact.
type verdict int

const (
	// same: all cards have the value.
	same verdict = iota
	// differs: two cards have different values.
	differs
	// untold: for some card nobody can tell.
	untold
	// pending: some card could not be asked, and the others agree.
	pending
)

// fact is the value of one card.
type fact struct {
	value string
	// unread: the card could not be asked, and the value is no more than a guess.
	unread bool
}

// agree returns what facts say together, and the value of those that are known, where they agree.
func agree(facts []fact) (v verdict, known string) {
	missing, waiting := false, false
	for _, f := range facts {
		switch {
		case f.unread:
			waiting = true
		case f.value == "":
			missing = true
		case known == "":
			known = f.value
		case known != f.value:
			return differs, ""
		}
	}
	switch {
	case missing:
		return untold, ""
	case waiting:
		return pending, known
	}
	return same, known
}
