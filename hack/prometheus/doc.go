// Package prometheus pins the Prometheus that the sandbox can start, and promtool, which runs the unit tests of the
// alerting rules. Both are built from modules. It is a module of its own so that their dependencies never enter the
// product's.
package prometheus
