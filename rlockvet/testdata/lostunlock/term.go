package lostunlock

import (
	"context"

	"github.com/fencelock/fencelock/leader"
)

func termNever(ctx context.Context, election *leader.Election) error {
	term, err := election.Campaign(ctx) // want `the lock is not unlocked: term.StepDown is never called`
	if err != nil {
		return err
	}
	return work(term.Context())
}

func termOnOnePath(ctx context.Context, election *leader.Election) error {
	term, err := election.Campaign(ctx) // want `the lock is not unlocked on all paths: the return on line 23 is reached without term.StepDown`
	if err != nil {
		return err
	}
	if err := work(term.Context()); err != nil {
		return err
	}
	return term.StepDown(ctx)
}

func termEnds(ctx context.Context, election *leader.Election) error {
	term, err := election.Campaign(ctx)
	if err != nil {
		return err
	}
	defer term.StepDown(ctx)
	return work(term.Context())
}

func run(ctx context.Context, election *leader.Election) error {
	return election.Run(ctx, func(ctx context.Context, term *leader.Term) error { return work(ctx) })
}
