/**
 * Assigns partitions to the members of the group: fair shares, and a member retains its partitions if the shares allow. A takeover rebuilds
 * the state of a partition in memory. kafkajs' own round robin would move most partitions, with a pause, whenever a worker joins or leaves.
 */
import { AssignerProtocol, type PartitionAssigner } from 'kafkajs';

/**
 * Builds the assigner. `assigned` returns the partitions of this member, which the group leader receives at the join.
 * `count` partitions are in use (grow.ts).
 */
export function buildStickyAssigner(assigned: () => readonly number[], count: number): PartitionAssigner {
  return ({ cluster }) => ({
    name: 'FarthingKeepingAssigner',
    version: 0,
    protocol({ topics }) {
      const userData = Buffer.from(JSON.stringify(assigned()));
      return { name: this.name, metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData }) };
    },
    async assign({ members, topics }) {
      const [topic] = topics as readonly string[];
      const made = cluster.findTopicPartitionMetadata(topic!).map(({ partitionId }) => partitionId);
      const partitions = made.filter((partition) => partition < count);
      const claims = new Map(members.map(({ memberId, memberMetadata }) => [memberId, parseClaim(memberMetadata)]));
      return [...computeShares(partitions, claims)].map(([memberId, share]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: 0,
          assignment: { [topic!]: share },
          userData: Buffer.alloc(0),
        }),
      }));
    },
  });
}

/**
 * Computes the shares of the members. They differ by at most one partition; a partition that two members claim goes to the first by name.
 */
export function computeShares(
  partitions: readonly number[],
  claims: ReadonlyMap<string, readonly number[]>,
): Map<string, number[]> {
  const free = new Set(partitions);
  const members = [...claims.keys()].sort();
  const given = new Map(members.map((member) => [member, [] as number[]]));
  const least = Math.floor(partitions.length / members.length);
  let larger = partitions.length % members.length;
  for (const member of members) {
    const share = given.get(member)!;
    for (const partition of claims.get(member)!) {
      if (!free.has(partition)) continue;
      if (share.length === least && larger > 0) larger--;
      else if (share.length >= least) continue;
      share.push(partition);
      free.delete(partition);
    }
  }
  for (const partition of [...free].sort((a, b) => a - b)) {
    const poorest = members.reduce((a, b) => (given.get(b)!.length < given.get(a)!.length ? b : a));
    given.get(poorest)!.push(partition);
  }
  return given;
}

function parseClaim(metadata: Buffer): number[] {
  const decoded = AssignerProtocol.MemberMetadata.decode(metadata);
  const text = decoded?.userData.toString('utf8') ?? '';
  return text === '' ? [] : (JSON.parse(text) as number[]);
}
