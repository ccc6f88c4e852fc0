// Package interop has no code of its own: its tests put Redisson, in a JVM, on the other side of this project's locks.
//
//	.ci/interop     installs a JDK and Maven where there are none, builds the Java side, and runs the tests
//
// The Java side, in the directory redisson, is one program for the whole run. It does what the tests say, thread by
// thread: each call of a lock's method is a command, so that all checks are made here, by one witness, also of what is
// done in the JVM. cases.txt says which test covers which of Redisson's own.
package interop
