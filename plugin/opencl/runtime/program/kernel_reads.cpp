// Compares a program's defines with those that its kernel file reads.
#include "kernel_reads.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "ocltensor/error.h"

namespace ocltensor::opencl {
namespace {

// Whether a text has the name as a word.
bool names(const std::string& text, const std::string& name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end])))
      return true;
  }
  return false;
}

// Null if nothing is known.
const KernelReads* reads_of(const Source& source) {
  const auto all = kernel_reads();
  const auto known = std::ranges::find(all, std::string_view(source.path), &KernelReads::path);
  return known == all.end() || !is_embedded() ? nullptr : &*known;
}

}  // namespace

void refuse_missing(const Source& source, const std::string& lines) {
  const KernelReads* known = reads_of(source);
  if (known == nullptr) return;
  std::istringstream needed(known->needed);
  for (std::string name; needed >> name;)
    if (lines.find("#define " + name + " ") == std::string::npos)
      fail(TB_E_INTERNAL, "{}: a launch does not set the define {}, which would be 0 in an #if",
           source.path, name);
}

bool checks_defines() { return OCLTENSOR_CHECKS_DEFINES != 0; }

void refuse_unread(const Source& source, const std::string& lines) {
  const KernelReads* known = reads_of(source);
  if (known == nullptr) return;
  std::string texts;  // of the defines
  std::istringstream in(lines);
  std::vector<std::string> unread;
  for (std::string define, name, text; in >> define >> name && std::getline(in, text);) {
    texts += text + "\n";
    if (!names(known->defines, name)) unread.push_back(name);
  }
  for (const std::string& name : unread)
    if (!names(texts, name))
      fail(TB_E_INTERNAL, "{}: a launch sets the define {}, which this kernel does not read",
           source.path, name);
}

}  // namespace ocltensor::opencl
