package simnode

// Annotations of the sandbox. They are not part of the product's contract.
const (
	FaultAnnotation    = "gcu.sandbox/fault"
	RunForAnnotation   = "gcu.sandbox/run-for"
	ExitCodeAnnotation = "gcu.sandbox/exit-code"
	InitForAnnotation  = "gcu.sandbox/init-for"
	StopForAnnotation  = "gcu.sandbox/stop-for"
)
