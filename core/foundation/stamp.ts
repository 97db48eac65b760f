/** Stamps of a record: created_at, updated_at, created_by, updated_by. */

/** User and instant of a request. */
export type Author = { readonly user_id: string; readonly now: Date };

export function createdBy({ user_id, now }: Author) {
  const instant = now.toISOString();
  return {
    status: 'published',
    created_at: instant,
    updated_at: instant,
    created_by: user_id,
    updated_by: user_id,
  } as const;
}

export function updatedBy({ user_id, now }: Author) {
  return { updated_at: now.toISOString(), updated_by: user_id };
}
