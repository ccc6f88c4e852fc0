package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// nextURL is where the next of several URLs begins: commas and spaces may stand in a password.
var nextURL = regexp.MustCompile(`[,\s]+(rediss?|unix)://`)

// splitURLs returns the URLs of a text that has several, one after the other.
func splitURLs(text string) (all []string) {
	text = strings.Trim(text, ", \t\r\n")
	from := 0
	for _, at := range nextURL.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, text[from:at[0]])
		from = at[2]
	}
	return append(all, text[from:])
}

// addresses returns the URLs of the servers, one or several.
func (c *connection) addresses() ([]string, error) {
	switch {
	case len(c.urls) > 0 && c.urlsFile != "":
		return nil, usage("--url and --urls-file exclude each other")
	case c.urlsFile != "":
		return readURLs("--urls-file", c.urlsFile)
	case len(c.urls) == 0:
		return splitURLs(cmp.Or(os.Getenv(urlVariable), defaultURL)), nil
	}
	var all []string
	for _, text := range c.urls {
		all = append(all, splitURLs(text)...)
	}
	for _, one := range all {
		if u, err := url.Parse(one); err != nil {
			return nil, usage("--url is not a URL: write it as %s", defaultURL)
		} else if _, has := u.User.Password(); has || u.Query().Has(passwordParameter) {
			return nil, usage("--url has a password, which all users of this machine can see: put it into %s, %s, --urls-file or --password-file", urlVariable, passwordVariable)
		}
	}
	return all, nil
}

// readURLs returns the URLs that the file of a flag has, one a line, without empty lines and those that begin with #.
func readURLs(flag, path string) (all []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return nil, usage("%s: %s has no URL: write one a line", flag, path)
	}
	return all, nil
}

// several tells whether the URLs are those of a quorum's servers.
func (c *connection) several() bool {
	all, err := c.addresses()
	return err == nil && len(all) > 1
}

// openAll returns a client for each of the servers, which have asked nothing yet.
func (c *connection) openAll() ([]redis.UniversalClient, error) {
	addresses, err := c.addresses()
	if err != nil {
		return nil, err
	}
	if len(addresses) > 1 && (c.cluster || c.sentinel != "") {
		return nil, usage("several URLs are those of a quorum's servers: --cluster and --sentinel-master are for one URL")
	}
	all := make([]redis.UniversalClient, 0, len(addresses))
	for i, address := range addresses {
		rdb, err := c.openOne(address, len(addresses) == 1)
		if err != nil {
			closeAll(all)
			if len(addresses) > 1 {
				err = usage("server %d of %d: %s", i+1, len(addresses), reason(err))
			}
			return nil, err
		}
		all = append(all, rdb)
	}
	return all, nil
}

func closeAll(all []redis.UniversalClient) {
	for _, rdb := range all {
		_ = rdb.Close()
	}
}

// shownAll returns the URLs without their passwords.
func (c *connection) shownAll() []string {
	addresses, _ := c.addresses()
	for i, address := range addresses {
		addresses[i] = withoutPassword(address)
	}
	return addresses
}

// shown is the URL without its password, or how many servers there are.
func (c *connection) shown() string {
	if all := c.shownAll(); len(all) == 1 {
		return all[0]
	} else if len(all) > 1 {
		return fmt.Sprintf("a quorum of %d servers", len(all))
	}
	return "no URL"
}

// withoutPassword is the URL as it may be shown.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a URL that cannot be read"
	}
	if q := u.Query(); q.Has(passwordParameter) {
		q.Set(passwordParameter, "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}
