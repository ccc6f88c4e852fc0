package recipes

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/rlock"
)

// Deposit is a handler that changes one account at a time, over all processes. write shows the token to a guard. Once write has begun only
// the guard can say that nothing was written: the client may be closed meanwhile.
func Deposit(client *rlock.Client, write func(ctx context.Context, account string, token int64) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		account := r.PathValue("account")
		lock := fenced.NewLock(client, "lock:account:"+account)
		began := false
		err := lock.Do(r.Context(), func(ctx context.Context, token int64) error {
			began = true
			return write(ctx, account, token)
		}, rlock.Wait(2*time.Second))
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case !began: // the account is busy, the client is closed, or Redis is away
			log.Println(account, err)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the lock was not to be had: nothing was done", http.StatusServiceUnavailable)
		case errors.Is(err, guard.ErrStale):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "another holder has written before: this request wrote nothing", http.StatusServiceUnavailable)
		default:
			http.Error(w, "the deposit may or may not be done", http.StatusInternalServerError)
		}
	}
}
