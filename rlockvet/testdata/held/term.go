package held

import (
	"context"

	"github.com/fencelock/fencelock/leader"
)

func noTerm(ctx context.Context, election *leader.Election) error {
	if _, err := election.Campaign(ctx); err != nil { // want `the hold that Campaign returns is dropped: StepDown needs it`
		return err
	}
	return work(ctx)
}

func term(ctx context.Context, election *leader.Election) error {
	term, err := election.Campaign(ctx)
	if err != nil {
		return err
	}
	defer term.StepDown(ctx)
	return work(term.Context())
}
