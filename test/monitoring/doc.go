// Package monitoring tests what people look at: the rules with Prometheus' own promtool, and every query of the
// dashboards and rules by a real Prometheus that scrapes a sandbox.
package monitoring
