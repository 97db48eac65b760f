/** Every record belongs to one tenant and one environment (docs/rules/records.md, "Tenant and environment"). */
export type Scope = { readonly tenant_id: string; readonly environment_id: string };

/** Returns a key of the scope for maps and advisory locks; ids contain no slash. */
export function scopeKey(scope: Scope): string {
  return `${scope.tenant_id}/${scope.environment_id}`;
}
