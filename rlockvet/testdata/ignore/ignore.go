package ignore

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

func above(ctx context.Context, lock *rlock.Lock) {
	//rlockvet:ignore held the process ends here
	lock.Lock(ctx)
}

func beside(ctx context.Context, lock *rlock.Lock) {
	lock.Lock(ctx) //rlockvet:ignore held the process ends here
}

func another(ctx context.Context, lock *rlock.Lock) {
	//rlockvet:ignore wrongctx the process ends here
	lock.Lock(ctx) // want `the context that Lock returns is dropped: Unlock needs it$`
}

func bare(ctx context.Context, lock *rlock.Lock) {
	//rlockvet:ignore held
	lock.Lock(ctx) // want `is dropped: Unlock needs it \(rlockvet:ignore needs a reason\)`
}
