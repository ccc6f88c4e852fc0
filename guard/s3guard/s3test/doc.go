// Package s3test tests s3guard on versitygw, an S3 server on a folder. It is a module of its own, so that the server stays out of the
// library's. The tests build the server, start it on a socket in a temporary folder, and stop it:
//
//	GOWORK=off go test ./...
package s3test
