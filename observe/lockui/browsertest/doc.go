// Package browsertest tests the page of lockui in a browser: by keyboard alone, on a narrow screen, in the dark, without JavaScript. It is a
// module of its own, so that who uses the locks gets no browser's driver.
//
//	CHROMIUM=$(../../../.ci/chromium) GOWORK=off go test ./...
package browsertest
