import type { ReactNode } from 'react';

/** The coin with its fourth part. */
export function Mark(): ReactNode {
  return (
    <svg
      viewBox="0 0 24 24"
      width="22"
      height="22"
      fill="none"
      stroke="var(--copper)"
      strokeWidth="1.6"
      aria-hidden="true"
    >
      <circle cx="12" cy="12" r="10" />
      <path d="M12 12H22M12 12V2" />
      <path d="M12 12V2a10 10 0 0 1 10 10z" fill="var(--copper)" stroke="none" />
    </svg>
  );
}
