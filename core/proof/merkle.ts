/**
 * The Merkle tree of RFC 9162, 2.1 (docs/proof.md, "The tree"), grown leaf by leaf: what is kept is the root of each whole subtree on the
 * left, one for each level. The hash is an argument, because core imports no engine for it.
 */
export type Hash = (...parts: readonly Uint8Array[]) => Uint8Array;

/** A hash beside the way from a leaf to the root, and on which side it stands. */
export type PathStep = { readonly side: 'left' | 'right'; readonly hash: Uint8Array };

type Subtree = { readonly hash: Uint8Array; readonly size: number; readonly isWatched: boolean };

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

export class MerkleTree {
  readonly #hash: Hash;
  readonly #subtrees: Subtree[] = [];
  readonly #path: PathStep[] = [];
  size = 0;

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  /** The next leaf, in order; of the one that is `watched` the path is kept. Answers its hash. */
  add(leaf: Uint8Array, { watched = false }: { watched?: boolean } = {}): Uint8Array {
    const hash = this.#hash(LEAF, leaf);
    let subtree: Subtree = { hash, size: 1, isWatched: watched };
    this.size++;
    while (this.#subtrees.at(-1)?.size === subtree.size) subtree = this.#joined(this.#subtrees.pop()!, subtree);
    this.#subtrees.push(subtree);
    return hash;
  }

  /** Once, behind the last leaf. */
  finish(): { readonly root: Uint8Array; readonly path: readonly PathStep[] } {
    const whole = this.#subtrees.reduceRight<Subtree | null>(
      (right, left) => (right === null ? left : this.#joined(left, right)),
      null,
    );
    return { root: whole?.hash ?? this.#hash(), path: this.#path };
  }

  #joined(left: Subtree, right: Subtree): Subtree {
    if (left.isWatched) this.#path.push({ side: 'right', hash: right.hash });
    if (right.isWatched) this.#path.push({ side: 'left', hash: left.hash });
    return {
      hash: this.#hash(NODE, left.hash, right.hash),
      size: left.size + right.size,
      isWatched: left.isWatched || right.isWatched,
    };
  }
}
