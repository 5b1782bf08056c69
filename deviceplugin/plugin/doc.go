// Package plugin says which whole cards kubelet should give out, and how cards are named to it.
//
// # Promise
//
// Prefer returns exactly as many cards as were asked for, sorted, all of them available, those that must be
// included among them, and the same ones for the same question. It does no I/O and keeps nothing.
//
// # How it chooses
//
// Kubelet asks without saying for whom. Where the record of exactly one waiting container fits the question
// (that many cards, all available, those that must be included among them) the question is most likely
// about that container, and its recorded cards are the answer: then kubelet's IDs are the cards. Where none
// or several fit, it is topology's best subset: close to each other, and leaving the most for larger jobs.
//
// # What it is not
//
// A preference. Kubelet may ask before it has seen a card return, may ignore the answer, and asks about two
// pods in any order. The record decides what a container gets, in PreStart; a preference that was wrong
// costs a difference between ID and card, never a card.
//
// # Refusals
//
// Only questions that have no answer: more cards than there are, cards that must be included and are not
// available or too many, a minor that no card has or that stands twice. Kubelet fails a pod for good when a
// plugin refuses, so a card that the tree does not know is no reason to: such cards are taken last, the
// lowest minors first.
package plugin
