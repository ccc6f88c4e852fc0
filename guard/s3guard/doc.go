// Package s3guard refuses stale tokens in an object store with conditional writes: S3, and what has If-Match and If-None-Match of its
// PutObject. A store that ignores them accepts stale writes, and nobody notices: try yours. The tests are on versitygw.
//
//	g, err := s3guard.New(client) // an *s3.Client of aws-sdk-go-v2
//	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
//		return g.Put(ctx, "reports", "2026/11.json", token, body)
//	})
//	if errors.Is(err, guard.ErrStale) { ... } // this call has written nothing
//
// Code that has only its context shows guard.Token(ctx, "name of the lock"). The resource of an error is BUCKET/KEY.
//
// # The object
//
// The largest accepted token of an object is in its user metadata, as fencelock-token. A write looks at it, stops where it is larger, and
// else replaces the very object that it looked at, by its ETag; where that has changed meanwhile it looks again.
//
// An ETag of S3 is a checksum of the content alone. If the content came back, so would the ETag, and a writer who had looked before would
// pass. So a guarded object ends with 64 bytes of its own write: a newline, and 63 spaces and tabs by chance. JSON, YAML, HTML and most text
// are read as before; [Guard.Get] returns the body without them. What may have no such end (an archive, a picture), and what is too large
// to be in memory, goes to a key of its own that nobody writes again; guard the small object that names it.
//
// An object that no guard has written has the token 0. All writers have to use a guard: what is written past it is not seen.
//
// # Deletion
//
// There is no Delete: with the object its token would be gone, and an older holder might create it again. Put an empty body, or one that
// says that it is deleted, and remove the object by the client when no older holder can be left.
//
// # When the store is away
//
// A write is sent once: the client, which repeats requests silently, is told not to. Where no answer came, or an error of the server's
// (500, 503), the error is [ErrUnknown] and its cause. Without ErrUnknown an error means that nothing was written. ctx bounds a
// call.
//
// The client needs s3:GetObject, s3:PutObject, and s3:ListBucket, without which S3 says 403 for an object that is not there.
package s3guard
