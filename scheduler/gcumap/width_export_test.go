package gcumap

// Columns is columns, for the proof that drawings keep within their width.
var Columns = columns
