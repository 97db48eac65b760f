/**
 * The Merkle tree of RFC 9162, 2.1 (docs/proof.md, "The tree"), built leaf by leaf. It stores only the roots of finished subtrees of 2^n
 * leaves, at most one per size. The hash function is an argument, because core imports no implementation.
 */
export type Hash = (...parts: readonly Uint8Array[]) => Uint8Array;

/** A sibling hash on the path from a leaf to the root, and its side. */
type PathStep = { readonly side: 'left' | 'right'; readonly hash: Uint8Array };

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

  /** Adds the next leaf, in order, and returns its hash. If `watched`, records the path from the leaf to the root for `finish`. */
  add(leaf: Uint8Array, { watched = false }: { watched?: boolean } = {}): Uint8Array {
    const hash = this.#hash(LEAF, leaf);
    let subtree: Subtree = { hash, size: 1, isWatched: watched };
    this.size++;
    while (this.#subtrees.at(-1)?.size === subtree.size) subtree = this.#joined(this.#subtrees.pop()!, subtree);
    this.#subtrees.push(subtree);
    return hash;
  }

  /** Returns the root and the path. Must be called once, after the last leaf. */
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
