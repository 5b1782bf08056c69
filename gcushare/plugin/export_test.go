package plugin

// OnStep makes f be called at each step of an arbiter that leaves something behind.
func OnStep(a *Arbiter, f func(step string)) { a.onStep = f }
