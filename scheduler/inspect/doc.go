// Package inspect answers the requests that scripts of the older gcushare scheduler make:
//
//	GET /gcushare-scheduler/inspect          all nodes that share their cards, sorted by name
//	GET /gcushare-scheduler/inspect/<node>   one node
//	GET /version                             the version of this scheduler
//
// The shapes are the old ones; amounts are slices of a card. The numbers come from the ledger that pods
// are placed by. It reads only, and leaves who may ask to the server in front of it.
package inspect
