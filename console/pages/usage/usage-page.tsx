import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function UsagePage(): ReactNode {
  return <PageHead title="UsagePage" />;
}
