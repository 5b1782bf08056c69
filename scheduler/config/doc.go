// Package config reads the arguments of the GCUFit plugin: versioned, defaulted and strictly
// validated. A field it does not know, a version it does not know or a value out of range stops the
// scheduler at start with a message that names the field, the value and what is allowed.
package config
