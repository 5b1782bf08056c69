// Package pki makes the sandbox's certificates. One authority per data folder signs the servers and
// every client; its key and the service-account key stay in the data folder, all leaf certificates
// are made afresh at each start. Nothing here is meant to protect more than a loopback cluster: keys
// are files only the owner can read.
package pki
