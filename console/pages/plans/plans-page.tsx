import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function PlansPage(): ReactNode {
  return <PageHead title="PlansPage" />;
}
