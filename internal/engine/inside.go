package engine

// The types of the public packages are structs around those of this package, so that none of them
// converts into another. By these functions a public package has what is inside of the types of
// another one. Each is set as the package with the type begins.
var (
	ClientOf func(client any) *Client // what is in an *rlock.Client
	Public   func(client *Client) any // an *rlock.Client around it
	LockOf   func(lock any) *Lock     // what is in a *fenced.Lock
)
