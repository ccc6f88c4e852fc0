package locktusd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/fencelock/fencelock/adapters/locktusd"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

const bound = time.Minute // for what comes by itself

func TestMain(m *testing.M) {
	locktest.ServeAsSecond(second)
	os.Exit(locktest.Main(m, 4))
}

// second is the second process: a tusd on the Redis at args[0] and the folder args[1].
func second(args []string) (locktest.Answer, error) {
	client, err := rlock.New(redis.NewClient(&redis.Options{Addr: args[0]}))
	if err != nil {
		return nil, err
	}
	server, err := serve(client, args[1])
	if err != nil {
		return nil, err
	}
	return func(call string, _ ...string) (string, error) {
		if call != "address" {
			return "", fmt.Errorf("there is no %s", call)
		}
		return server.URL, nil
	}, nil
}

// serve starts a tusd that stores in a folder.
func serve(client *rlock.Client, folder string) (*httptest.Server, error) {
	locker, err := locktusd.New(client)
	if err != nil {
		return nil, err
	}
	composer := handler.NewStoreComposer()
	filestore.New(folder).UseIn(composer)
	locker.UseIn(composer)
	uploads, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(http.StripPrefix("/files/", uploads)), nil
}
