package limits

// Profiles are the engines, with the limits of what this project and go-redis send. Where no document has the words of a refusal they are those of
// Redis 7.
var Profiles = []Profile{
	{
		Name:   "ElastiCache, node-based",
		Source: "docs.aws.amazon.com/AmazonElastiCache/latest/dg/SupportedCommands.html, read 2026-11-30",
		Limits: []Limit{{On: "CONFIG"}},
	},
	{
		Name:   "ElastiCache Serverless",
		Source: "docs.aws.amazon.com/AmazonElastiCache/latest/dg/SupportedCommands.html, read 2026-11-30",
		Limits: []Limit{
			{On: "CONFIG WAIT CLIENT|TRACKING"},
			{On: "WAITAOF ASKING CLIENT|SETINFO CLIENT|MAINT_NOTIFICATIONS"}, // in no list of what is supported
			{Does: MixedChannels},                                            // "PUBSUB commands internally use sharded PUBSUB, so channel names will be mixed"
			{Does: OneSlot, Source: "it is always in cluster mode: .../dg/RedisConfiguration.html, read 2026-11-30"},
			{Does: OneNode, Source: "\"All slots are surfaced to clients as being owned by a single virtual node\": .../dg/RedisConfiguration.html, read 2026-11-30"},
			{Does: UnknownInWords, Words: "ERR unknown command '%s', with args beginning with: ", Source: "github.com/redisson/redisson/issues/6466, 2025-02-28"},
		},
	},
	{
		Name:   "MemoryDB",
		Source: "docs.aws.amazon.com/memorydb/latest/devguide/restrictedcommands.html, read 2026-11-30",
		Limits: []Limit{{On: "CONFIG"}},
	},
	{
		// Azure Managed Redis is the same, by learn.microsoft.com/en-us/azure/redis/architecture, read 2026-11-30.
		Name:   "Redis Software",
		Source: "redis.io/docs/latest/operate/rs/references/compatibility, github.com/redis/docs 63f31f699, 2026-08-21",
		Limits: software,
	},
	{
		Name:   "Redis Cloud",
		Source: "redis.io/docs/latest/operate/rs/references/compatibility, github.com/redis/docs 63f31f699, 2026-08-21",
		Limits: append([]Limit{{On: "WAIT"}}, software...), // but for Flexible subscriptions
	},
	{
		Name:   "Active-Active",
		Source: "redis.io/docs/latest/operate/rs/databases/active-active, planning.md of 2026-07-06",
		Limits: append([]Limit{{On: "WAIT"}}, software...), // WAIT: "not supported for cross-instance replication"
	},
	{
		Name:   "Upstash",
		Source: "upstash.com/docs/redis/overall/compatibility, github.com/upstash/docs ef0ce438, 2026-08-21",
		Limits: []Limit{
			{On: "SPUBLISH SSUBSCRIBE SUNSUBSCRIBE PUBSUB|SHARDNUMSUB PUBSUB|SHARDCHANNELS CLUSTER ROLE CLIENT|MAINT_NOTIFICATIONS"},
			{On: "INFO|REPLICATION", Says: "# Replication\r\n"}, // "a section name that is not supported produces only its heading"
		},
	},
	{
		Name:   "Dragonfly",
		Source: "github.com/dragonflydb/dragonfly f8eca6d, 2026-08-22",
		Limits: []Limit{
			{Does: DeclaredKeys, Source: "dragonflydb.io/docs/managing-dragonfly/scripting, github.com/dragonflydb/documentation 61b24fc, 2026-06-22"},
			{On: "INFO|SERVER", Says: "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\nuptime_in_seconds:99999\r\n"},
			{On: "WAIT", Source: "unsupported before 90e82ea3d, 2026-07-10"},
			{On: "WAITAOF CLIENT|MAINT_NOTIFICATIONS"},
			{On: "CLUSTER", Words: "ERR Cluster is disabled. Enabled via passing --cluster_mode=emulated|yes"},
			{On: "ROLE CLIENT SCRIPT SUBSCRIBE", In: InScripts, Words: "ERR This Redis command is not allowed from script"},
		},
	},
	{
		Name:   "KeyDB",
		Source: "github.com/Snapchat/KeyDB 603ebb2, 2024-04-04",
		Limits: []Limit{
			{On: "WAITAOF SPUBLISH SSUBSCRIBE SUNSUBSCRIBE"},
			{On: "CLIENT|SETINFO CLIENT|MAINT_NOTIFICATIONS PUBSUB|SHARDNUMSUB PUBSUB|SHARDCHANNELS", Words: "ERR Unknown subcommand or wrong number of arguments"},
		},
	},
	{
		Name:   "Garnet",
		Source: "github.com/microsoft/garnet e508a41, 2026-08-21",
		Limits: append([]Limit{{On: "EVAL EVALSHA", Words: "ERR This instance has Lua scripting support disabled"}}, garnet...),
	},
	{
		Name:   "Garnet with --lua --lua-transaction-mode",
		Source: "github.com/microsoft/garnet e508a41, 2026-08-21",
		Limits: garnet,
	},
	{
		Name:   "Garnet with --no-pubsub",
		Source: "github.com/microsoft/garnet e508a41, 2026-08-21",
		Limits: append([]Limit{{On: "PUBLISH SUBSCRIBE", Words: "ERR %s is disabled, enable it with --pubsub option."}}, garnet...),
	},
	{
		Name:   "OCI Cache, sharded",
		Source: "docs.oracle.com/iaas/Content/ocicache/restrictedcommands.htm, read 2026-11-30",
		Limits: []Limit{{On: "EVAL EVALSHA SCRIPT CLUSTER"}},
	},
	{
		Name:   "OCI Cache, not sharded",
		Source: "docs.oracle.com/iaas/Content/ocicache/restrictedcommands.htm, read 2026-11-30",
		Limits: []Limit{{On: "CLUSTER"}},
	},
	{
		Name:   "Memorystore for Redis",
		Source: "cloud.google.com/memorystore/docs/redis/product-constraints, read 2026-11-30",
		Limits: []Limit{{On: "CLIENT CLUSTER COMMAND CONFIG"}},
	},
	{
		Name:   "Memorystore for Valkey",
		Source: "docs.cloud.google.com/memorystore/docs/valkey/supported-commands, read 2026-11-30",
		Limits: []Limit{{On: "CLIENT|SETINFO CLIENT|MAINT_NOTIFICATIONS CONFIG|GET", Words: "NOPERM this user has no permissions to run the '%s' command"}},
	},
	{
		Name:   "Envoy",
		Source: "envoyproxy.io/docs/envoy/latest/intro/arch_overview/other_protocols/redis, and command_splitter_impl.cc, mid 2026",
		Limits: envoy("ERR unknown command '%s', with args beginning with: "),
	},
	{
		Name:   "Envoy before 2026",
		Source: "envoyproxy.io/docs/envoy/latest/intro/arch_overview/other_protocols/redis, and command_splitter_impl.cc of 2025",
		Limits: append([]Limit{{In: Outside, On: "HELLO CLIENT INFO ROLE"}}, envoy("unsupported command '%s'")...),
	},
	{
		Name:   "twemproxy",
		Source: "github.com/twitter/twemproxy 60aaf85, notes/redis.md, 2022-10-05",
		Limits: []Limit{
			{Does: HangsUp}, // "parsed unsupported command", in nc_redis.c
			{In: Outside, On: "PUBLISH SUBSCRIBE UNSUBSCRIBE SSUBSCRIBE PUBSUB SELECT INFO TIME CONFIG CLIENT SCAN HELLO CLUSTER WAIT WAITAOF SCRIPT"},
		},
	},
}

// software is of Redis Software, as of a clustered database with one endpoint.
var software = []Limit{
	{On: "INFO", In: InScripts, Words: "ERR This Redis command is not allowed from script"}, // "Not supported for scripts"
	{On: "ROLE ASKING READONLY CLUSTER"},
	{Does: OneSlot, Source: "durability-ha/clustering.md of 2026-01-30"},
}

var garnet = []Limit{
	{On: "SPUBLISH ROLE SUBSCRIBE", In: InScripts, Words: "ERR This Redis command is not allowed from script"},
	{On: "WAIT WAITAOF PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB SUNSUBSCRIBE CLIENT|MAINT_NOTIFICATIONS", Words: "ERR unknown command"},
}

func envoy(words string) []Limit {
	return []Limit{
		{In: Outside, On: "SUBSCRIBE SSUBSCRIBE UNSUBSCRIBE SUNSUBSCRIBE SPUBLISH PUBSUB WAIT WAITAOF COMMAND ASKING CLIENT|MAINT_NOTIFICATIONS"},
		{Does: UnknownInWords, Words: words},
	}
}
