#include "base/xml_text.h"

#include <gtest/gtest.h>

namespace razorkv {
namespace {

TEST(XmlText, EntitiesStandForWhatHasAMeaning) {
  EXPECT_EQ(escape_xml("a < b && \"c\" > d"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; d");
  EXPECT_EQ(escape_xml("plain \u00e9"), "plain \u00e9");
  EXPECT_EQ(escape_xml(""), "");
}

}  // namespace
}  // namespace razorkv
