/** What this machine can enforce, as the daemon found out by doing it; pure. */

export interface DoctorCheck {
  name: string;
  holds: boolean;
  detail: string;
  remedy?: string;
  group?: string;
}

/** The checks of an answer, where it is one. */
export function parseChecks(content: unknown): DoctorCheck[] | null {
  if (typeof content !== 'object' || content === null || !('checks' in content)) return null;
  const { checks } = content;
  return Array.isArray(checks) && checks.every(isCheck) ? checks : null;
}

function isCheck(value: unknown): value is DoctorCheck {
  if (typeof value !== 'object' || value === null) return false;
  const check = value as Record<string, unknown>;
  return (
    typeof check['name'] === 'string' &&
    typeof check['holds'] === 'boolean' &&
    typeof check['detail'] === 'string'
  );
}

/** Those that do not hold first, each part in the order of the daemon. */
export function failingFirst(checks: readonly DoctorCheck[]): DoctorCheck[] {
  return [...checks.filter((check) => !check.holds), ...checks.filter((check) => check.holds)];
}
